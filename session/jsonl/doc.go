// Package jsonl keeps sessions in JSON Lines files, where pi looks for them too.
//
// A Repository is a folder of sessions: it makes and opens them, lists them and
// finds the one that a user means.
//
//	repo := &jsonl.Repository{Root: filepath.Join(agentDir, "sessions")}
//	s, err := repo.Continue(cwd)
//
// List and ListAll read whole sessions, texts included; Search keeps of each only
// what a list shows, and Recent reads one after the other, the newest first.
// SetName, Move and Delete work on sessions that nobody has open; Import takes a
// file in, Export gives one out, and neither writes over anything unasked.
//
// A session that is open for writing holds a lock, so that a second writer, in
// this process or another, is told who has it. The lock is a file beside the
// session, <name>.jsonl.lock; it ends with the process that holds it, however
// that ends, and is taken away when the session is closed. Reading and listing
// need no lock. On file systems without locks a writer notices when somebody
// else wrote in between and reports a Conflict rather than write over it, as it
// does when the file was moved, deleted, cut or replaced under it. The session
// stays as it was, can be exported or forked, and goes on once the file is back.
//
// While a run executes tools, its journal stands beside the session too,
// <name>.jsonl.run, so that a crash costs no result: see package harness. It
// belongs to who has the lock, is made with the first note and taken away when
// the run is over, and the session file is the same with it and without. Forks
// of a file and imports take it along, Delete takes it away, listings pass it
// over; who moves a session file by other means moves it too, or loses the
// results of the run that was cut off. Old notes go once there is a MiB of them.
// Its lines are made durable as those of the session are, with Options.Sync
// alone, and like those none is longer than Options.MaxLine, which is also how
// large a journal may be.
package jsonl
