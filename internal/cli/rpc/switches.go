package rpc

import (
	"github.com/pinch-agent/pinch/harness"
)

// The settings that commands change hold at once and are written to the
// person's settings, for sessions to come.

func (s *server) setSteeringMode(c *command) {
	s.setMode(c, "steeringMode", s.c.Harness.SetSteeringMode)
}

func (s *server) setFollowUpMode(c *command) {
	s.setMode(c, "followUpMode", s.c.Harness.SetFollowUpMode)
}

func (s *server) setMode(c *command, setting string, set func(harness.QueueMode) error) {
	mode, err := c.text("mode")
	if err == nil {
		err = set(harness.QueueMode(mode))
	}
	if err == nil {
		err = s.c.Save(s.ctx, setting, mode)
	}
	s.finish(c, err)
}

func (s *server) setAutoCompaction(c *command) {
	s.setSwitch(c, "compaction.enabled", s.c.Harness.SetAutoCompaction)
}

func (s *server) setAutoRetry(c *command) {
	s.setSwitch(c, "retry.enabled", s.c.Harness.SetAutoRetry)
}

func (s *server) setSwitch(c *command, setting string, set func(on bool)) {
	on, err := c.flag("enabled")
	if err == nil {
		set(on)
		err = s.c.Save(s.ctx, setting, on)
	}
	s.finish(c, err)
}
