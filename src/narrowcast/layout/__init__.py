"""Memory layouts: where each element of an array lies, written once and used in both directions."""

from typing import Any

import numpy.typing as npt

from narrowcast.catalog.layouts import layouts
from narrowcast.errors import ShapeError
from narrowcast.layout.pattern import AxisPattern, Layout, parsed

__all__ = ["AxisPattern", "Layout", "device_scales", "find", "layouts", "pack", "unpack"]


def find(name: str) -> AxisPattern:
    """Return a layout by name or alias.

    Raises:
        UnknownNameError: no such layout; close matches are listed.

    Example:
        >>> find("zz").storage_shape((16, 4))
        (1, 2, 16, 2)
    """
    return parsed(layouts[name].pattern)


def device_scales(axis: int) -> AxisPattern:
    """Return the device's layout of scales whose blocks run along ``axis``, counted from the last.

    The axis is halved and the pairs come last: ``[.., ceil(G / 2), 2]`` for -1, two scale rows interleaved else.

    Example:
        >>> device_scales(-2).pack([[1, 2], [3, 4], [5, 6]]).tolist()
        [[[1, 3], [2, 4]], [[5, 0], [6, 0]]]
    """
    if axis >= 0:
        raise ShapeError(f"axis {axis}: name the axis from the end (-1 is the last).")
    behind = " ".join(f"a{i}" for i in range(axis + 1, 0)).replace("-", "")
    return parsed(f"(g1 g0:2) {behind} -> g1 {behind} g0")


def pack(array: npt.ArrayLike, layout: str, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
    """Store an array in a layout; short boxes are padded with zeros.

    Args:
        array: any dtype; the layout describes its last axes.
        layout: layout name or alias, see ``narrowcast.catalog.layouts``.
        out: array for the result.

    Returns:
        Array in storage order.

    Raises:
        UnknownNameError: no such layout.
        ShapeError: fewer axes than the layout has.

    Source: the layout's row.

    Example:
        >>> pack([[1, 2, 3]], "scale-device").tolist()
        [[[1, 2], [3, 0]]]
    """
    return find(layout).pack(array, out)


def unpack(
    storage: npt.ArrayLike, layout: str, shape: tuple[int, ...], out: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """Read back an array from a layout; the inverse of :func:`pack`.

    Args:
        storage: elements in storage order, any shape of the right size.
        layout: layout name or alias.
        shape: the array's shape; padding beyond it is dropped.
        out: array for the result.

    Returns:
        Array of ``shape``.

    Raises:
        UnknownNameError: no such layout.
        ShapeError: storage of another size than the shape needs.

    Source: the layout's row.

    Example:
        >>> unpack([1, 2, 3, 0], "scale-device", (1, 3)).tolist()
        [[1, 2, 3]]
    """
    return find(layout).unpack(storage, shape, out)
