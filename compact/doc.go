// Package compact makes room in a long conversation: it cuts off the beginning,
// has a model sum that up, and keeps the recent end as it is.
//
//	p, err := compact.Prepare(s.Path(), settings.For(model))   // decides, asks nobody
//	result, err := compact.Run(ctx, p, compact.Options{Model: model, Stream: stream})
//	s.Append(result.Entry())                                   // from here on the context is short
//
// Nothing is lost: the session keeps all entries, and the user can go back
// before the compaction. Neither Prepare nor Run writes. Who calls them sees to
// it that nothing is appended in between.
//
// # When
//
// A conversation is compacted on demand; by itself when the context leaves less
// room in the window than Settings reserve for an answer (Should); or when a
// request did not fit. Decide tells the two apart after a run and before a
// prompt, and whether a failed answer is to be repeated afterwards; Between
// looks at the size alone, between two turns. Sizes come from the provider's
// count of the last answer, with four characters a token for what came since
// (EstimatePath); MeasuredPath says whether there is a count that still holds.
//
// # What stays
//
// CutPoint walks back from the end until about Settings.KeepRecentTokens are
// kept. A cut never stands between a call and its results. It may stand inside
// a turn, when a single one is longer than what is to be kept; the beginning of
// that turn then gets a summary of its own, which stands behind the one of the
// history. What the conversation before this one kept is summed up again; its
// summary is brought up to date instead of being summed up itself.
//
// So the answer at the end and the results of its calls always stay, however
// long they are. ShortenResults has the context show them cut then.
//
// # Summaries
//
// The model gets the conversation as a text about it (Serialize), so that it
// does not go on with it, and instructions that ask for fixed headings. It has
// no tools. Requests are not cached, go by a session id of their own, and are
// repeated as Options.Retry says. A summary that was cut, is empty, takes more
// than half of the context window or comes with a call is refused, because the
// next answer would build on it.
//
// A conversation that is too long for a single request is read in up to 16
// pieces, each with the summary of those before it; of requests there are at most
// 31, without repetitions. A previous summary that takes more than half of the
// window is read as part of the conversation. Options.Progress hears of
// all that; everything ends with the context.
//
// At the end of a summary stand the files that the tools read, write and edit
// were called with. The entry keeps them in its details, from where the next
// compaction takes them over.
//
// # Branches
//
// A user who goes back in a session leaves a branch behind. Left lists its
// entries, PrepareBranch picks what fits, RunBranch sums it up for
// Session.BranchWithSummary.
package compact
