// Reads paths from the standard input and prints the errors of Go's parser for each, tab-separated.
package main

import (
	"bufio"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
)

func main() {
	paths := bufio.NewScanner(os.Stdin)
	for paths.Scan() {
		fmt.Print(paths.Text())
		_, err := parser.ParseFile(token.NewFileSet(), paths.Text(), nil, parser.SkipObjectResolution|parser.ParseComments)
		if list, ok := err.(scanner.ErrorList); ok {
			for _, one := range list {
				fmt.Printf("\t%d: %s", one.Pos.Line, one.Msg)
			}
		} else if err != nil {
			fmt.Printf("\t%v", err)
		}
		fmt.Println()
	}
}
