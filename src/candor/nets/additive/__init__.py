"""The stages of the additive forecaster as networks: each begins where the one before ended.

| file | what it holds |
|---|---|
| account.py | the account (`candor.account`) as a layer without weights to learn, for training and for ONNX |
| settings.py | sizes and training of the shared network |
| shared.py | the shared network: one for all sensors, on what the account leaves |
| additive.py | the stages together, and how they are trained |
"""
