package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/session"
)

// checkBranch refuses what --branch cannot do; messages says whether something
// will be said to the model.
func checkBranch(a *Args, messages bool) error {
	switch {
	case a.Branch == "" && a.Summarize:
		return errors.New("--summarize sums up what --branch leaves: name the entry to go back to, which pinch sessions tree shows")
	case a.Branch == "":
		return nil
	case !a.Continue && a.Session == nil && a.SessionID == nil && a.Fork == nil:
		return errors.New("--branch goes back in a session: add -c for the newest one, or --session with an id")
	case !messages && !a.Summarize:
		return errors.New("--branch goes on from an earlier entry: say what with, or give --summarize")
	}
	return nil
}

// goBack does what --branch asks for: the next prompt goes on from there. It
// returns the summary of what was left, "" for none.
func (r *running) goBack(ctx context.Context, a *Args) (string, error) {
	if a.Branch == "" {
		return "", nil
	}
	e, err := entryOf(r.harness.Session(), a.Branch)
	if err != nil {
		return "", err
	}
	if a.Summarize {
		if err := r.checkKey(ctx); err != nil {
			return "", err
		}
	}
	to, err := r.harness.NavigateTree(ctx, e.ID, harness.TreeOptions{Summarize: a.Summarize})
	switch {
	case err != nil:
		return "", plain(err)
	case to.Cancelled:
		return "", errors.New("The session stays where it was: the move was aborted")
	case to.Summary == nil:
		return "", nil
	}
	return to.Summary.Data().(*session.BranchSummaryEntry).Summary, nil
}

// entryOf is the entry of s that a person names by its id or the beginning of it.
func entryOf(s *session.Session, name string) (*session.Entry, error) {
	if e := s.Entry(name); e != nil {
		return e, nil
	}
	var found *session.Entry
	for _, e := range s.Entries() {
		switch {
		case !strings.HasPrefix(e.ID, name):
		case found != nil:
			return nil, fmt.Errorf("Several entries begin with '%s': write more of the id", name)
		default:
			found = e
		}
	}
	if found == nil {
		return nil, fmt.Errorf("The session has no entry '%s': pinch sessions tree %s lists them", name, s.ID())
	}
	return found, nil
}
