package responses

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// packLevel is the level of zstd that bodies are compressed with, and packWindow
// how far back it looks for what it has seen, in bytes.
const (
	packLevel  = 3
	packWindow = 2 << 20
)

// packer compresses bodies. Its tables are made with the first one; it is safe
// for concurrent use.
type packer struct {
	once    sync.Once
	encoder *zstd.Encoder
	err     error
}

func (p *packer) pack(body []byte) ([]byte, error) {
	p.once.Do(func() {
		p.encoder, p.err = zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(packLevel)),
			zstd.WithWindowSize(packWindow),
			zstd.WithLowerEncoderMem(true),
			zstd.WithEncoderConcurrency(2))
	})
	if p.err != nil {
		return nil, p.err
	}
	return p.encoder.EncodeAll(body, make([]byte, 0, len(body)/3+512)), nil
}
