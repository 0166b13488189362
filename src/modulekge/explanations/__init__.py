"""Why a triple scores as it does, and which patterns relations follow."""
