"""Are CANDOR's explanations true? They are scored on synthetic networks, whose truth the generator knows.

| file | what it does |
|---|---|
| cells.py | a cell: CANDOR trained on a synthetic network, and what it scored |
| questions.py | the questions: shocks, edges, twins, storage |
| answers.py, pulses.py | the model's answers: its states, and how its forecasts respond to pulses |
| rules.py | the answers of simple rules and of a linear regression |
| scores.py | the measures, the same for all answers |
| results.py | mean and spread over seeds, beside the goals |
"""
