from __future__ import annotations

from pathlib import Path

import pytest

from ci.cute_compare.cases import Case
from ci.cute_compare.cpp import Compiler, Raw, parse, read, shown, written
from ci.cute_compare.known import Known
from toolchain.cute.layout import Basis, Layout
from toolchain.errors import ToolchainError

# As much of CuTe as a layout that is given back, unless it steps down.
HEADER = """#include <type_traits>
namespace cute {
template <int v> struct C {};
template <class... T> struct tuple {};
template <class T, int... N> struct ScaledBasis {};
template <class S, class D> struct Layout { S shape() const; D stride() const; };
template <class T> struct is_layout : std::false_type {};
template <class T> struct is_tuple : std::false_type {};
template <class T> struct is_scaled_basis : std::false_type {};
template <class T> struct is_static : std::true_type {};
template <class S, int d> auto coalesce(Layout<S, C<d>> made) { static_assert(d >= 0, "down"); return made; }
}
"""


def test_an_operand_is_a_value_of_its_type() -> None:
    assert written(Layout.parse("(4,(2,3)):(1,(0,-8))")) == (
        "Layout<tuple<C<4>,tuple<C<2>,C<3>>>,tuple<C<1>,tuple<C<0>,C<-8>>>>{}"
    )
    assert written(Layout((4,), (Basis(2, (0, 1)),))) == "Layout<tuple<C<4>>,tuple<ScaledBasis<C<2>,0,1>>>{}"
    assert written((Known.of(5), 2)) == "tuple<int,C<2>>{int{5},C<2>{}}"
    assert written(Basis(Known.of(3), (1,))) == "ScaledBasis<int,1>{3}"


def test_a_case_shows_its_result() -> None:
    layout = Layout.parse("4:2")
    assert shown(Case("upcast", (layout, 2)), 7) == (
        "Shown<decltype(upcast<decltype(C<2>{})::value>(Layout<C<4>,C<2>>{}))> r7;"
    )
    assert shown(Case("idx2crd", (Known.of(5), 3)), 0) == (
        "constexpr auto v0 = idx2crd(int{5}, C<3>{}); Shown<std::remove_const_t<decltype(v0)>, numbers(v0)> r0;"
    )


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("cute::C<12>", 12),
        ("cute::constant<int, 3>", 3),
        ("cute::tuple<cute::C<2>, cute::tuple<cute::C<-1> > >", (2, (-1,))),
        ("cute::ScaledBasis<cute::C<2>, 0, 1>", Basis(2, (0, 1))),
        ("cute::Layout<cute::tuple<cute::C<4>, cute::C<2> >, cute::tuple<cute::C<1>, cute::C<8> > >",
         Raw((4, 2), (1, 8))),
        ("Layout<cute::tuple<int, C<2> >, tuple<ScaledBasis<int, 1>, int> >, Numbers{3, int [40]{5, 7}}",
         Raw((5, 2), (Basis(7, (1,)), 0))),
        ("int, Numbers{1, int [40]{9}}", 9),
        ("int, Numbers{1}", 0),
    ],
)  # fmt: skip
def test_a_result_is_read_from_the_name_of_a_type(text: str, result: object) -> None:
    assert parse(text) == result


def test_a_type_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ToolchainError, match="has the type Swizzle"):
        parse("cute::Swizzle<3, 4, 3>")


def test_an_error_on_a_line_of_a_case_is_a_refusal() -> None:
    said = """cases.cpp:14:30: error: aggregate ‘Shown<cute::C<3> > r0’ has incomplete type and cannot be defined
layout.hpp: In instantiation of ‘f()’:
cases.cpp:15:20:   required from here
layout.hpp:80:3: error: static assertion failed: Shape Divisibility Condition
cases.cpp:15:30: error: aggregate ‘Shown<cute::C<4> > r1’ has incomplete type and cannot be defined
cases.cpp:16:5: error: no matching function for call to ‘f(int)’
"""
    assert read(said, 4, 13) == [3, None, None, None]


@pytest.mark.needs("g++")
def test_the_compiler_gives_results_and_refusals(tmp_path: Path) -> None:
    (tmp_path / "cute").mkdir()
    (tmp_path / "cute/layout.hpp").write_text(HEADER)
    cases = [Case("coalesce", (Layout(4, stride),)) for stride in (1, -1, 3)]
    assert Compiler((tmp_path,)).results(cases, tmp_path) == [Raw(4, 1), None, Raw(4, 3)]


@pytest.mark.needs("g++")
def test_headers_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"cannot compile CuTe's headers: .*cute/layout.hpp"):
        Compiler((tmp_path,)).results([Case("coalesce", (Layout(4, 1),))], tmp_path)
