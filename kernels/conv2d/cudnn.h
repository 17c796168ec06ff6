/* Convolution by NVIDIA's cuDNN, which is loaded at run time: this program is neither built nor
 * linked against it. PERFKIT_CUDNN names the library where it is not on the loader's path.
 *
 * All functions return 0 or -1 with dev_error_text; on a machine without cuDNN (or a backend
 * without it) conv2d_cudnn_open fails with the reason. Weights are [out][in][3][3] in the
 * storage of the fields. Multiplies float fields in float, not in TF32.
 */
#ifndef KERNELS_CONV2D_CUDNN_H
#define KERNELS_CONV2D_CUDNN_H

#include "kernels/conv2d/conv2d.h"

struct conv2d_cudnn; /* the library, attached to one device */
struct conv2d_cudnn_plan;

int conv2d_cudnn_open(struct dev *dev, struct conv2d_cudnn **out);
void conv2d_cudnn_close(struct conv2d_cudnn *cudnn); /* after its plans; NULL is allowed */

/* search: run every algorithm of the library and take the fastest; else take what its heuristic
 * names. */
int conv2d_cudnn_plan(struct conv2d_cudnn *cudnn, const struct conv2d_shape *shape,
                      enum storage storage, bool search, struct conv2d_cudnn_plan **out);
void conv2d_cudnn_plan_free(struct conv2d_cudnn_plan *plan); /* NULL is allowed */

size_t conv2d_cudnn_workspace_bytes(const struct conv2d_cudnn_plan *plan);

/* workspace may be NULL when its size is 0. */
int conv2d_cudnn_launch(struct dev_queue *queue, struct conv2d_cudnn_plan *plan,
                        const struct dev_buffer *in, const struct dev_buffer *weight,
                        struct dev_buffer *out, struct dev_buffer *workspace,
                        struct dev_event **event);

#endif
