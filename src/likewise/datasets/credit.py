"""Default of Credit Card Clients: 30,000 clients of a Taiwanese bank in 2005; a default next month is the target.

The columns are in alphabetical order of their names in the file (X1, X12, ...), numbers first. As the paper does,
X3 to X11 are categories, the age (X5) too. The codes that the source does not explain are labelled as such.
"""

from __future__ import annotations

from likewise.datasets._tabular import Column, Table

MONTHS = ("September", "August", "July", "June", "May", "April")
LATE = tuple((str(n), f"{n} months late" if n > 1 else "1 month late") for n in range(1, 9))
REPAYMENT = (("-2", "nothing owed"), ("-1", "paid in full"), ("0", "paid in part, on time"), *LATE)


def _repayment(i: int) -> Column:
    return Column(f"X{6 + i}", "one_hot", f"repayment in {MONTHS[i]}", labels=REPAYMENT)


CREDIT = Table(
    name="credit",
    title="Credit card default",
    source="Yeh, I. (2009). Default of Credit Card Clients. UCI Machine Learning Repository. "
    "doi:10.24432/C55S3H. CC BY 4.0",
    target="Y",
    positive="1",
    columns=(
        Column("X1", "continuous", "credit limit", "NT$"),
        *(Column(f"X{12 + i}", "continuous", f"bill in {month}", "NT$") for i, month in enumerate(MONTHS)),
        *(Column(f"X{18 + i}", "continuous", f"paid in {month}", "NT$") for i, month in enumerate(MONTHS)),
        _repayment(4),
        _repayment(5),
        Column(
            "X3",
            "one_hot",
            "education",
            labels=(
                ("0", "unknown (code 0)"),
                ("1", "graduate school"),
                ("2", "university"),
                ("3", "high school"),
                ("4", "other"),
                ("5", "unknown (code 5)"),
                ("6", "unknown (code 6)"),
            ),
        ),
        Column(
            "X4",
            "one_hot",
            "marital status",
            labels=(("0", "unknown (code 0)"), ("1", "married"), ("2", "single"), ("3", "other")),
        ),
        Column("X5", "one_hot", "age", labels=tuple((str(age), f"{age} years") for age in range(21, 80))),
        *(_repayment(i) for i in range(4)),
    ),
    sensitive=(Column("X2", "one_hot", "sex", labels=(("1", "man"), ("2", "woman"))),),
)
