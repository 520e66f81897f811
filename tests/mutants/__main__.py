import sys

from tests.mutants.run import main

sys.exit(main(sys.argv[1:]))
