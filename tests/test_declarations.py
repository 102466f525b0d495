"""What kernels declare about their arrays: read from the source, and evaluated at every launch."""

import numpy as np
import pytest

from workbench.declarations import Parameter, declared_kernels, expected_sizes, parameter


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("i64 n", Parameter("n", "i64", pointer=False, writable=False)),
        ("\n   double b_squared ", Parameter("b_squared", "double", pointer=False, writable=False)),
        ("const real* position SIZE(n * D)", Parameter("position", "real", pointer=True, writable=False, size="n * D")),
        ("u64 *key_out SIZE(n)", Parameter("key_out", "u64", pointer=True, writable=True, size="n")),
        ("const i32 * order\n  SIZE(>=\n LAST(first))", Parameter("order", "i32", True, False, ">= LAST(first)")),
    ],
)
def test_a_declaration_is_read(declaration, expected):
    assert parameter(declaration) == expected


@pytest.mark.parametrize(
    "declaration",
    ["", "real", "void", "const real** p SIZE(n)", "real x[3]", "unsigned int n", "real& x", "u64* key", "i64 n SIZE(3)"],
)
def test_a_declaration_that_cannot_be_checked_is_refused(declaration):
    with pytest.raises(TypeError, match=r"must read `type name` or `\[const\] type\* name SIZE\(elements\)`"):
        parameter(declaration)


def test_commas_and_parentheses_inside_a_size_do_not_end_a_declaration():
    text = "KERNEL(walk)(i64 n, i64 block, u8* a SIZE(CEIL(n, block) * D),\nu8* b SIZE(a)) { f(1); }\nKERNEL(two)(i64 n) {}"
    found = declared_kernels(text)
    assert [p.name for p in found["walk"]] == ["n", "block", "a", "b"]
    assert [p.size for p in found["walk"]] == [None, None, "CEIL(n, block) * D", "a"]
    assert [p.name for p in found["two"]] == ["n"]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("n", 10), ("n * D", 30), ("n - 1 + 2 * block", 17), ("CEIL(n, block)", 3), ("CEIL(n - 1, 3)", 3),
        ("33 ** D", 35937), ("LAST(first)", 7), ("first", 6), ("2 * first + 1", 13), ("n * D if block else 0", 30),
        ("n * D if n - 10 else 0", 0), (">= n", 10), ("LAST(empty)", 0),
    ],
)
def test_a_size_is_evaluated_from_the_arguments(size, expected):
    text = f"i64 n|i32 block|const i64* first SIZE(6)|const i32* empty SIZE(0)|u8* out SIZE({size})"
    given = 10, 4, np.array([[0, 1, 2], [3, 5, 7]]), np.zeros(0, np.int32), None
    assert expected_sizes(tuple(map(parameter, text.split("|"))), 3)(*given)[-1] == expected


@pytest.mark.parametrize(
    "size", ["m", "n / 2", "x", "n.real", "LAST(n)", "LAST(n + 1)", "open(n)", "n[0]", "", "n;", "1.5", "(lambda: n)()"]
)
def test_a_size_that_is_no_expression_of_the_parameters_is_refused(size):
    with pytest.raises(TypeError, match="the declared size of out must be an expression of integer parameters"):
        expected_sizes((parameter("i64 n"), parameter("double x"), parameter(f"u8* out SIZE({size})")), 3)
