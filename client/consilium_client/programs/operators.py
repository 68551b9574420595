"""The operators that a program may have: PyTorch's ATen, without any that writes in place, draws, opens or calls back.

Names are ATen's, `name.overload`. Two kinds depend on whether the model trains: those of `SWITCHED` have a flag, which
the interpreter sets, at this index of their arguments. Those of `CREATING` make a tensor on the interpreter's device.
"""

from __future__ import annotations

from typing import Final

SWITCHED: Final = {
    "alpha_dropout.default": 2, "batch_norm.default": 5, "dropout.default": 2, "feature_dropout.default": 2,
    "gru.input": 6, "instance_norm.default": 5, "lstm.input": 6,
}  # fmt: skip
# Running mean and variance, which training writes. Without them, the layer takes its rows' own, also in evaluation.
MOVING: Final = {"batch_norm.default": (3, 4), "instance_norm.default": (3, 4)}
CREATING: Final = frozenset({
    "arange.default", "arange.start", "arange.start_step", "full.default", "ones.default", "scalar_tensor.default",
    "zeros.default",
})  # fmt: skip
SIZES: Final = frozenset({"sym_size.int"})  # its result is an integer
INTEGERS: Final = frozenset({"add", "floordiv", "mod", "mul", "neg", "sub"})  # of integers, named int.NAME in programs

_ELEMENTWISE = """
    __and__.Tensor __or__.Tensor __xor__.Tensor abs.default add.Scalar add.Tensor addcdiv.default addcmul.default
    bitwise_and.Tensor bitwise_not.default bitwise_or.Tensor ceil.default celu.default clamp.default clamp.Tensor
    clamp_max.default clamp_min.default clone.default contiguous.default cos.default detach.default div.Scalar
    div.Tensor elu.default eq.Scalar eq.Tensor erf.default exp.default expm1.default floor.default
    floor_divide.default ge.Scalar ge.Tensor gelu.default gt.Scalar gt.Tensor hardsigmoid.default hardswish.default
    hardtanh.default le.Scalar le.Tensor leaky_relu.default lerp.Scalar log.default log1p.default log2.default
    log_sigmoid.default logical_and.default logical_not.default logical_or.default lt.Scalar lt.Tensor
    masked_fill.Scalar masked_fill.Tensor maximum.default minimum.default mish.default mul.Scalar mul.Tensor
    ne.Scalar ne.Tensor neg.default pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prelu.default reciprocal.default
    relu.default relu6.default remainder.Scalar remainder.Tensor round.default rsqrt.default rsub.Scalar
    selu.default sigmoid.default sign.default silu.default sin.default softplus.default sqrt.default square.default
    sub.Scalar sub.Tensor tanh.default to.dtype type_as.default where.ScalarOther where.self zeros_like.default
    ones_like.default full_like.default
"""
_SHAPES = """
    cat.default chunk.default constant_pad_nd.default expand.default expand_as.default flatten.using_ints
    flip.default gather.default index.Tensor index_select.default movedim.int narrow.default pad.default permute.default
    pixel_shuffle.default pixel_unshuffle.default repeat.default repeat_interleave.self_int reshape.default
    roll.default select.int slice.Tensor split.Tensor split_with_sizes.default squeeze.default squeeze.dim
    stack.default t.default transpose.int tril.default triu.default unbind.int unflatten.int unfold.default
    unsqueeze.default view.default view_as.default new_full.default new_ones.default new_zeros.default
"""
_SUMS = """
    all.default all.dim amax.default amin.default any.default any.dim argmax.default argmin.default cumsum.default
    diff.default log_softmax.int logsumexp.default max.default max.dim mean.default mean.dim min.default min.dim
    norm.ScalarOpt_dim prod.dim_int softmax.int sum.default sum.dim_IntList topk.default var.correction var.dim
    linalg_vector_norm.default std.correction
"""
_LAYERS = """
    adaptive_avg_pool1d.default adaptive_avg_pool2d.default adaptive_avg_pool3d.default adaptive_max_pool2d.default
    alpha_dropout.default avg_pool1d.default avg_pool2d.default avg_pool3d.default baddbmm.default
    batch_norm.default bmm.default conv1d.default conv1d.padding conv2d.default conv2d.padding conv3d.default
    conv3d.padding conv_transpose1d.default conv_transpose2d.input conv_transpose3d.input dropout.default
    einsum.default embedding.default feature_dropout.default group_norm.default gru.input instance_norm.default
    layer_norm.default lstm.input linear.default matmul.default max_pool1d.default max_pool2d.default
    max_pool3d.default mm.default addmm.default rms_norm.default scaled_dot_product_attention.default
    upsample_bilinear2d.vec upsample_nearest1d.vec upsample_nearest2d.vec upsample_nearest3d.vec
    upsample_trilinear3d.vec
"""
TENSORS: Final = frozenset(f"{_ELEMENTWISE}{_SHAPES}{_SUMS}{_LAYERS}".split()) | CREATING
ALLOWED: Final = TENSORS | SIZES | {f"int.{name}" for name in INTEGERS} | {"item"}
TYPES: Final = ("float32", "int64", "int32", "bool")
