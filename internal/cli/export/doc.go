// Package export makes of a session one HTML page that a person reads in a
// browser, on a phone too, and can give away: a single file that asks nothing of
// any network.
//
//	path, err := export.Save(ctx, s, "", export.Options{}) // pinch-session-<name>.html
//	path, err := export.File(ctx, "s.jsonl", "out.html", export.Options{})
//	err := export.Write(ctx, w, s, export.Options{})
//
// The page holds every entry of every branch as it is in the session's log, in
// script elements that do not run, and before them an index with a row for each
// entry. Its own script decodes and draws what comes into view, so that a
// long session opens about as fast as a short one, and the page is as large
// as the session. Nothing is decoded while it is written: it costs the memory of
// the session and a little for each entry.
//
// # Safety
//
// What is in a session was written by models, by tools and by files from
// anywhere. The page never turns any of it into markup: the script builds
// elements and sets their text. Should it fail at that, the page's content
// security policy lets no script run but its own, whose hash it names, and lets
// nothing be fetched; pictures are data: URIs of raster formats. Links that a
// reader can follow are http, https and mailto.
//
// The same session gives the same page, byte for byte.
package export
