/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lstm_arguments: what the kernels of one step of an LSTM are told; written by src/ops/lstm.c. Gates lie in a row of 4 x hidden: input,
 * forget, cell, output. Strides count elements.
 */
#ifndef OPENMPS_KERNELS_LSTM_ARGUMENTS_H
#define OPENMPS_KERNELS_LSTM_ARGUMENTS_H

#ifndef __METAL_VERSION__
#include <stdint.h>
#endif

typedef struct mps_lstm_arguments {
  int64_t hidden;
  int64_t out_row; /* of the hidden state that is written, or of its gradient; all else has rows of hidden, or 4 x hidden, elements */
  uint32_t has_gradient;                 /* 1: the hidden state of this step was an output too */
  uint32_t reserved;
} mps_lstm_arguments;

#endif
