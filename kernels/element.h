/* SPDX-License-Identifier: BSD-3-Clause
 *
 * element: what memory holds as a value. The byte of a bool may hold anything but 0 for true: that of a view of uint8, say. The compiler
 * takes 0 and 1 for granted, so memory that others wrote is read through here.
 */
#ifndef OPENMPS_KERNELS_ELEMENT_H
#define OPENMPS_KERNELS_ELEMENT_H

#include <metal_stdlib>

using namespace metal;

template <typename T> inline T element(device const T *at) { return *at; }
inline bool element(device const bool *at) { return *(device const uchar *)at != 0; }

#endif
