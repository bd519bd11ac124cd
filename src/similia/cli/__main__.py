from similia.cli import main

main()
