// Command pinch is a coding agent for the terminal.
package main

import (
	"os"

	"github.com/pinch-agent/pinch/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
