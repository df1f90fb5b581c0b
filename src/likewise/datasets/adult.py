"""Adult: 45,222 people of the 1994 US census; an income above 50,000 dollars a year is the target.

The columns are in alphabetical order, numbers first. `education` and `native-country` are left out, as the paper
does (`education-num` says the same as the first); so are the 3,620 people of whom something is unknown.
"""

from __future__ import annotations

from likewise.datasets._tabular import Column, Table

ADULT = Table(
    name="adult",
    title="Adult income",
    source="Becker, B., Kohavi, R. (1996). Adult. UCI Machine Learning Repository. doi:10.24432/C5XW20. CC BY 4.0",
    target="income",
    positive=">50K",
    columns=(
        Column("age", "continuous", "age", "years"),
        Column("capital-gain", "continuous", "capital gain", "dollars"),
        Column("capital-loss", "continuous", "capital loss", "dollars"),
        Column("education-num", "continuous", "education (class 1 to 16)"),
        Column("fnlwgt", "continuous", "people like this one, by the census"),
        Column("hours-per-week", "continuous", "work", "hours a week"),
        Column(
            "marital-status",
            "one_hot",
            "marital status",
            labels=(
                ("Divorced", "divorced"),
                ("Married-AF-spouse", "married, spouse in the armed forces"),
                ("Married-civ-spouse", "married"),
                ("Married-spouse-absent", "married, spouse absent"),
                ("Never-married", "never married"),
                ("Separated", "separated"),
                ("Widowed", "widowed"),
            ),
        ),
        Column(
            "occupation",
            "one_hot",
            "occupation",
            labels=(
                ("Adm-clerical", "clerk"),
                ("Armed-Forces", "armed forces"),
                ("Craft-repair", "craft or repair"),
                ("Exec-managerial", "manager"),
                ("Farming-fishing", "farming or fishing"),
                ("Handlers-cleaners", "handler or cleaner"),
                ("Machine-op-inspct", "machine operator or inspector"),
                ("Other-service", "other service"),
                ("Priv-house-serv", "service in a household"),
                ("Prof-specialty", "professional"),
                ("Protective-serv", "protective service"),
                ("Sales", "sales"),
                ("Tech-support", "technician"),
                ("Transport-moving", "transport"),
            ),
        ),
        Column(
            "relationship",
            "one_hot",
            "in the household",
            labels=(
                ("Husband", "husband"),
                ("Not-in-family", "not in a family"),
                ("Other-relative", "other relative"),
                ("Own-child", "child"),
                ("Unmarried", "unmarried, with family"),
                ("Wife", "wife"),
            ),
        ),
        Column(
            "workclass",
            "one_hot",
            "employer",
            labels=(
                ("Federal-gov", "federal government"),
                ("Local-gov", "local government"),
                ("Private", "private"),
                ("Self-emp-inc", "self-employed, incorporated"),
                ("Self-emp-not-inc", "self-employed, not incorporated"),
                ("State-gov", "state government"),
                ("Without-pay", "works without pay"),
            ),
        ),
    ),
    sensitive=(
        Column(
            "race",
            "one_hot",
            "race",
            labels=(
                ("Amer-Indian-Eskimo", "American Indian or Eskimo"),
                ("Asian-Pac-Islander", "Asian or Pacific Islander"),
                ("Black", "black"),
                ("Other", "other"),
                ("White", "white"),
            ),
        ),
        Column("sex", "one_hot", "sex", labels=(("Female", "woman"), ("Male", "man"))),
    ),
)
