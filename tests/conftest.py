"""What holds for every test."""

from hypothesis import HealthCheck, settings

# Tests never assert time: a busy machine must not make a property fail.
settings.register_profile(
    "regimix", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("regimix")
