package compact

import (
	_ "embed"
	"strings"
)

// What models read. The texts are files of their own so that they can be read
// and reviewed as what they are.
var (
	//go:embed prompts/system.md
	systemText string
	//go:embed prompts/initial.md
	initialText string
	//go:embed prompts/update.md
	updateText string
	//go:embed prompts/turn_prefix.md
	turnPrefixText string
	//go:embed prompts/branch.md
	branchText string
	//go:embed prompts/continue.md
	continueText string
	//go:embed prompts/focus.md
	focusText string
	//go:embed prompts/no_history.md
	noHistoryText string
	//go:embed prompts/split_turn.md
	splitTurnText string
	//go:embed prompts/branch_preamble.md
	branchPreambleText string
	//go:embed prompts/nothing.md
	nothingText string
	//go:embed prompts/shortened.md
	shortenedText string
)

// Part names what a summary is of.
type Part string

// The parts that are summed up, each with instructions of its own.
const (
	Initial    Part = "initial"     // history without a summary before it
	Update     Part = "update"      // history that goes on where a summary ends
	TurnPrefix Part = "turn_prefix" // the beginning of a turn whose end is kept
	Branch     Part = "branch"      // a branch that the user left
)

// Instructions are the built-in ones for a part.
func Instructions(p Part) string {
	switch p {
	case Initial:
		return strings.TrimSpace(initialText)
	case Update:
		return strings.TrimSpace(updateText)
	case TurnPrefix:
		return strings.TrimSpace(turnPrefixText)
	case Branch:
		return strings.TrimSpace(branchText)
	}
	return ""
}

// FocusLeadIn is the text between the instructions and what the user wants to
// be minded.
func FocusLeadIn() string { return strings.TrimSpace(focusText) + "\n" }

// NoHistory stands for the history before a split turn when there is none.
func NoHistory() string { return strings.TrimSpace(noHistoryText) }

// SplitTurnHeading stands before the summary of a split turn's beginning.
func SplitTurnHeading() string { return strings.TrimSpace(splitTurnText) }

// BranchPreamble stands at the head of a branch's summary, with the line breaks
// behind it.
func BranchPreamble() string { return strings.TrimSpace(branchPreambleText) + "\n\n" }

// NothingToSummarize is the summary of a branch that holds no messages.
func NothingToSummarize() string { return strings.TrimSpace(nothingText) }
