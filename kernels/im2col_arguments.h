/* SPDX-License-Identifier: BSD-3-Clause
 *
 * im2col_arguments: what im2col and col2im are told; shared by C and Metal. Strides count elements.
 */
#ifndef OPENMPS_KERNELS_IM2COL_ARGUMENTS_H
#define OPENMPS_KERNELS_IM2COL_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

/* The image is (batch, channels, height, width); the columns are (batch, channels * window, places), places = rows of windows * windows a row. */
typedef struct mps_im2col_arguments {
  int64_t channels, image_size[2], window[2], dilation[2], padding[2], stride[2];
  int64_t places[2]; /* windows along height and width */
  int64_t image_batch, image_channel, image_stride[2];
  int64_t column_batch, column_row, column_place;
  int64_t rows; /* of places, or of the image, that one thread takes */
} mps_im2col_arguments;

#endif
