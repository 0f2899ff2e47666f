"""Which of several recipes is better: each trained with the same seeds, and what their scatter allows to say.

`contender.py` reads what is compared, `trials.py` trains it and keeps what is there already, `result.py` judges.
"""
