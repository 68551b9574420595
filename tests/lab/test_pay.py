"""Pay that does not follow rows is explained by its actual reason."""

from __future__ import annotations

from consilium_chain.settlement.settlement import Reason
from consilium_chain.tasks.judging_spec import RoundsSpec
from consilium_chain.tasks.money_spec import TOKEN
from consilium_lab.pay import Earner, Share, pay_in_words

RULE = (
    "Pay of a round goes by weight times the improvement by the hospital's cohort. Weight: 1 for each 10 rows, rounded"
    " up; at most 16."
)
ROUNDS = RoundsSpec(rows_per_weight=10, max_weight=16)


def earner(name: str, rows: int, weight: int, *shares: tuple[int, Reason]) -> Earner:
    return Earner(
        name, rows, weight, {number: Share(paid * TOKEN, why) for number, (paid, why) in enumerate(shares, 1)}
    )


def test_pay_in_words_is_the_rule_alone_if_pay_follows_rows() -> None:
    more, less = earner("a", 90, 9, (90, Reason.PAID)), earner("b", 50, 5, (50, Reason.PAID))
    assert pay_in_words([less, more], ROUNDS) == [RULE]
    nothing = [earner("a", 90, 9, (0, Reason.REJECTED)), earner("b", 50, 5, (0, Reason.REJECTED))]
    assert pay_in_words(nothing, ROUNDS) == [RULE]


def test_pay_in_words_names_the_rounds_in_which_a_larger_hospital_earned_less() -> None:
    large = earner("large", 90, 9, (50, Reason.PAID), (0, Reason.REJECTED), (0, Reason.REJECTED), (70, Reason.PAID))
    small = earner("small", 50, 5, (80, Reason.PAID), (30, Reason.PAID), (20, Reason.PAID), (10, Reason.PAID))
    middle = earner("middle", 60, 6, (60, Reason.PAID), (30, Reason.PAID), (20, Reason.PAID), (20, Reason.PAID))
    assert pay_in_words([small, middle, large], ROUNDS) == [
        RULE,
        "large (90 rows) was paid 120.00 tokens, and small (50 rows) 140.00. Reasons for large: round 1: its cohort"
        " improved the model less; round 2, 3: its cohort's median is below the acceptance floor.",
        "middle (60 rows) was paid 130.00 tokens, and small (50 rows) 140.00. Reasons for middle: round 1: its cohort"
        " improved the model less.",
    ]


def test_pay_in_words_names_the_largest_weight_and_the_steps() -> None:
    capped = [earner("a", 900, 16, (40, Reason.PAID)), earner("b", 160, 16, (40, Reason.PAID))]
    assert pay_in_words(capped, ROUNDS)[1:] == [
        "a (900 rows) was paid 40.00 tokens, and b (160 rows) 40.00. Reasons for a: both have weight 16, the most that"
        " the task allows."
    ]
    stepped = [earner("a", 59, 6, (40, Reason.PAID)), earner("b", 51, 6, (40, Reason.PAID))]
    assert pay_in_words(stepped, ROUNDS)[1].endswith("both have weight 6, by its steps.")
