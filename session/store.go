package session

import "io"

// Position is a place in a log: where its next line goes. What the number
// means is the store's own affair (bytes of a file, a sequence of a stream); 0
// is the start of a log that does not exist yet.
type Position int64

// Log is what a store holds: JSON lines, the last one possibly torn. A store
// gives it as a whole in Data, or a Reader that reads it in pieces.
type Log struct {
	// Data is the whole log. The session keeps it and shares its memory; nobody
	// may change it.
	Data []byte
	// Reader reads a log that is not to be held in memory; nil for one in Data.
	// The session finds in it where the entries stand and reads them when they
	// are needed, from several goroutines, also after the store was closed. What
	// is in the log must not change, while it may become longer.
	Reader io.ReaderAt
	Size   int64 // bytes to read from Reader
	// MaxLine is the longest line that is read, in bytes with its line break;
	// longer ones are passed over. 0, or more than 2 GiB, is for 2 GiB.
	MaxLine int64
	// Torn says that the last line lacks its line break.
	Torn bool
	// Next is where the next line goes.
	Next Position
	// Exists is false for a log that was never written.
	Exists bool
}

// Store keeps the log of one session. A session calls it from one goroutine at
// a time and is the only writer: a store that finds another position than the
// expected one reports a Conflict and writes nothing.
//
// Stores report *Error values.
type Store interface {
	// Path says where the log is, "" when it is nowhere but in memory.
	Path() string
	// Load reads the log. A log that does not exist is no error.
	Load() (Log, error)
	// Append adds whole lines in one write and returns the next position. At
	// position 0 it creates the log, and fails with Exists when there is one.
	// After an error the log is as it was.
	Append(at Position, lines []byte) (Position, error)
	// Replace puts data in the place of the whole log, or fails and leaves it.
	Replace(at Position, data []byte) (Position, error)
	// Sync makes what was written durable.
	Sync() error
	// Close lets go of the log. It does not sync.
	Close() error
}
