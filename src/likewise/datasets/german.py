"""Statlog (German Credit Data): 1,000 applicants, 20 attributes; good credit is the target.

The columns are in alphabetical order, numbers first. The public preprocessing has a 58th input, the row number of
the csv file; it is left out here.
"""

from __future__ import annotations

from likewise.datasets._tabular import Column, Table

GERMAN = Table(
    name="german",
    title="German credit",
    source="Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository. "
    "doi:10.24432/C5NC77. CC BY 4.0",
    target="target",
    positive="1",
    columns=(
        Column("age", "continuous", "age", "years"),
        Column("credit_amount", "continuous", "credit amount", "DM"),
        Column("duration", "continuous", "duration", "months"),
        Column("existing_credits", "continuous", "credits at this bank"),
        Column("installment_rate", "continuous", "instalments to income (class 1 to 4)"),
        Column("people_liable", "continuous", "dependants"),
        Column("residence_since", "continuous", "time at this address (class 1 to 4)"),
        Column(
            "credit_history",
            "one_hot",
            "credit history",
            labels=(
                ("A30", "no earlier credit, or all repaid"),
                ("A31", "all repaid at this bank"),
                ("A32", "current credits paid on time"),
                ("A33", "late payments in the past"),
                ("A34", "critical, or credits elsewhere"),
            ),
        ),
        Column(
            "employment",
            "one_hot",
            "in this job",
            labels=(
                ("A71", "unemployed"),
                ("A72", "under 1 year"),
                ("A73", "1 to 4 years"),
                ("A74", "4 to 7 years"),
                ("A75", "7 years or more"),
            ),
        ),
        Column("foreign_worker", "one_hot", "foreign worker", labels=(("A201", "yes"), ("A202", "no"))),
        Column("housing", "one_hot", "housing", labels=(("A151", "rented"), ("A152", "owned"), ("A153", "free"))),
        Column(
            "installment_plans",
            "one_hot",
            "other instalment plans",
            labels=(("A141", "with a bank"), ("A142", "with shops"), ("A143", "none")),
        ),
        Column(
            "job",
            "one_hot",
            "job",
            labels=(
                ("A171", "none, or unskilled and not resident"),
                ("A172", "unskilled, resident"),
                ("A173", "skilled employee or official"),
                ("A174", "manager, self-employed or highly qualified"),
            ),
        ),
        Column(
            "other_debtors",
            "one_hot",
            "who else is liable",
            labels=(("A101", "nobody"), ("A102", "a co-applicant"), ("A103", "a guarantor")),
        ),
        Column(
            "property",
            "one_hot",
            "property",
            labels=(
                ("A121", "real estate"),
                ("A122", "building society savings or life insurance"),
                ("A123", "a car or other"),
                ("A124", "unknown, or none"),
            ),
        ),
        Column(
            "purpose",
            "one_hot",
            "purpose",
            labels=(
                ("A40", "new car"),
                ("A41", "used car"),
                ("A410", "other"),
                ("A42", "furniture or equipment"),
                ("A43", "radio or television"),
                ("A44", "household appliances"),
                ("A45", "repairs"),
                ("A46", "education"),
                ("A48", "retraining"),
                ("A49", "business"),
            ),
        ),
        Column(
            "savings",
            "one_hot",
            "savings",
            labels=(
                ("A61", "under 100 DM"),
                ("A62", "100 to 500 DM"),
                ("A63", "500 to 1,000 DM"),
                ("A64", "1,000 DM or more"),
                ("A65", "unknown, or none"),
            ),
        ),
        Column(
            "status",
            "one_hot",
            "current account",
            labels=(
                ("A11", "overdrawn"),
                ("A12", "under 200 DM"),
                ("A13", "200 DM or more, or a regular salary"),
                ("A14", "no current account"),
            ),
        ),
        Column("telephone", "one_hot", "telephone", labels=(("A191", "none"), ("A192", "in the applicant's name"))),
    ),
    sensitive=(
        Column(
            "status_sex",
            "one_hot",
            "marital status and sex",
            labels=(
                ("A91", "man, divorced or separated"),
                ("A92", "woman, divorced, separated or married"),
                ("A93", "man, single"),
                ("A94", "man, married or widowed"),
            ),
        ),
    ),
)
