package rpc

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func TestUI(t *testing.T) {
	r := start(t)
	ui := <-r.ui
	ctx := t.Context()
	type answer struct {
		text string
		ok   bool
	}
	// ask runs a question and answers its record with members, "" for no answer.
	n := 0
	ask := func(question func() answer, method, members string) (got answer, request map[string]any) {
		t.Helper()
		n++
		done := make(chan answer, 1)
		go func() { done <- question() }()
		request = r.wait(n, func(rec map[string]any) bool { return rec["type"] == "extension_ui_request" })
		if request["method"] != method {
			t.Errorf("%v", request)
		}
		if members != "" {
			r.write(fmt.Sprintf(`{"type":"extension_ui_response","id":%q,%s}`+"\n", request["id"], members))
		}
		select {
		case got = <-done:
		case <-time.After(60 * time.Second):
			t.Fatalf("%s is not answered", method)
		}
		// A second answer, now too late, is nothing.
		r.write(fmt.Sprintf(`{"type":"extension_ui_response","id":%q,"value":"late"}`+"\n", request["id"]))
		return got, request
	}
	for _, timeout := range []time.Duration{0, time.Hour} {
		pick := func() answer {
			v, ok := ui.Select(ctx, "Pick", []string{"x", "y"}, timeout)
			return answer{v, ok}
		}
		sure := func() answer { return answer{ok: ui.Confirm(ctx, "Sure?", "Really?", timeout)} }
		name := func() answer {
			v, ok := ui.Input(ctx, "Name", "who", timeout)
			return answer{v, ok}
		}
		edit := func() answer {
			v, ok := ui.Editor(ctx, "Edit", "pre\nfill")
			return answer{v, ok}
		}
		for _, c := range []struct {
			question        func() answer
			method, members string
			want            answer
		}{
			{pick, "select", `"value":"y"`, answer{"y", true}},
			{pick, "select", `"cancelled":true`, answer{}},
			{pick, "select", `"cancelled":true,"value":"y"`, answer{}},
			{pick, "select", `"value":5`, answer{}},
			{pick, "select", `"confirmed":true`, answer{}},
			{sure, "confirm", `"confirmed":true`, answer{ok: true}},
			{sure, "confirm", `"confirmed":false`, answer{}},
			{sure, "confirm", `"confirmed":"true"`, answer{}},
			{sure, "confirm", `"cancelled":true`, answer{}},
			{sure, "confirm", `"value":"y"`, answer{}},
			{name, "input", `"value":""`, answer{"", true}},
			{name, "input", `"value":null`, answer{}},
			{edit, "editor", `"value":"edited\n"`, answer{"edited\n", true}},
		} {
			got, request := ask(c.question, c.method, c.members)
			if got != c.want {
				t.Errorf("%s answered with %s: %v", c.method, c.members, got)
			}
			if ms, has := request["timeout"]; has != (timeout > 0 && c.method != "editor") || has && ms != float64(timeout.Milliseconds()) {
				t.Errorf("timeout: %v", request)
			}
		}
	}
	got, request := ask(func() answer {
		v, ok := ui.Select(ctx, "Timed", []string{"p"}, 10*time.Millisecond)
		return answer{v, ok}
	}, "select", "")
	if got.ok || request["timeout"] != 10.0 || fmt.Sprint(request["options"]) != "[p]" {
		t.Errorf("%v, %v", got, request)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if got, _ = ask(func() answer { return answer{ok: ui.Confirm(ended, "Timed", "m", 0)} }, "confirm", ""); got.ok {
		t.Error("a question that was ended is confirmed")
	}
	for _, c := range []struct {
		do   func()
		want map[string]any
	}{
		{func() { ui.Notify("plain", "") }, map[string]any{"method": "notify", "message": "plain"}},
		{func() { ui.Notify("bad", "error") }, map[string]any{"method": "notify", "message": "bad", "notifyType": "error"}},
		{func() { ui.SetStatus("k", new("busy")) }, map[string]any{"method": "setStatus", "statusKey": "k", "statusText": "busy"}},
		{func() { ui.SetStatus("k", nil) }, map[string]any{"method": "setStatus", "statusKey": "k"}},
		{func() { ui.SetWidget("w", []string{"b"}, "belowEditor") },
			map[string]any{"method": "setWidget", "widgetKey": "w", "widgetLines": []any{"b"}, "widgetPlacement": "belowEditor"}},
		{func() { ui.SetWidget("w", nil, "") }, map[string]any{"method": "setWidget", "widgetKey": "w"}},
		{func() { ui.SetTitle("T") }, map[string]any{"method": "setTitle", "title": "T"}},
		{func() { ui.SetEditorText("typed") }, map[string]any{"method": "set_editor_text", "text": "typed"}},
	} {
		c.do()
		n++
		got := r.wait(n, func(rec map[string]any) bool { return rec["type"] == "extension_ui_request" })
		c.want["type"], c.want["id"] = "extension_ui_request", got["id"]
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
	// A text that only looks like an answer is a command.
	if d := r.data("get_entries", "since", nil); d["leafId"] == nil {
		t.Errorf("%v", d)
	}
	if a := r.call("get_entries", "since", "extension_ui_response"); a["success"] != false {
		t.Errorf("%v", a)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}
