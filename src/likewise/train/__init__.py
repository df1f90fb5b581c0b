"""Training: networks that are accurate and provably treat similar people alike. torch is needed here and only here.

The files of this room, none of which is imported before somebody trains:

    run.py            the front door: examples and settings in, a trained network with its certificate out
    settings.py       every option, its default per method, and what is refused
    examples.py       people with known outcomes, who can exist and who is similar; the validation part
    table.py          examples from a csv file
    layers.py         a network as torch tensors: start, score, to and from likewise.Network
    loop.py           the one loop: batches, Adam, early stopping, history, progress
    checkpoint.py     the state of the loop as a file that survives kill -9
    method.py         what a method is;  ftu.py, sensr.py, milp.py, certified.py are the four
    bound.py          the differentiable, sound bound on the twin difference over everyone
    local.py          the worst neighbour of each person of a batch, by linear steps with an exact oracle
    inner.py          the worst neighbour by the means of one's choice;  person.py is a MILP for one person
    target.py         the most accurate network with a certificate of delta
    calibrate.py      Platt scaling, folded into the last layer
    trained.py        the answer, and how it is saved;  export.py writes onnx and torch files
    measures.py       balanced accuracy and its like, group fairness included
    compare.py        all methods and the trivial baselines (baselines.py) side by side, and the front;  page.py
    estimators.py     FairMLPClassifier and FairMLPRegressor for scikit-learn
"""
