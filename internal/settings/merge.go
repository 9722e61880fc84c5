package settings

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// userOnly lists the keys that a project cannot set: it must not be able to
// trust itself or to redirect what leaves the machine.
func userOnly() []string {
	return []string{
		"cacheWarming", "defaultProjectTrust", "httpProxy", "selfUpdateCommand",
		"lastChangelogVersion", "extensionChangelogVersions", "trackingId", "deviceId",
	}
}

// overlay is merge with the rules of single keys.
func overlay(user, project object) object {
	project = slices.Clone(project)
	for _, key := range userOnly() {
		project = project.without(key)
	}
	if changes := stringList(project.get("defaultTools")); modifiers(changes) {
		inherited := stringList(user.get("defaultTools"))
		if len(inherited) == 0 || modifiers(inherited) {
			inherited = append(inherited, changes...)
		} else {
			inherited = changeList(inherited, changes)
		}
		project = project.set("defaultTools", jsonwire.AppendStrings(nil, inherited))
	}
	return merge(user, project)
}

// modifiers reports whether a list changes an inherited one.
func modifiers(list []string) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(s string) bool {
		return !strings.HasPrefix(s, "+") && !strings.HasPrefix(s, "-")
	})
}

// changeList applies +name and -name entries to a list of names.
func changeList(list, changes []string) []string {
	for _, c := range changes {
		name := c[1:]
		list = slices.DeleteFunc(list, func(n string) bool { return n == name && c[0] == '-' })
		if c[0] == '+' && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// migrate renames keys of old files. An old key gives way to a new one beside it.
func migrate(o object) object {
	o = move(o, "queueMode", "steeringMode", func(v jsontext.Value) jsontext.Value { return v })
	o = move(o, "websockets", "transport", func(v jsontext.Value) jsontext.Value {
		switch string(v) {
		case "true":
			return jsontext.Value(`"websocket"`)
		case "false":
			return jsontext.Value(`"sse"`)
		}
		return nil
	})
	if v := o.get("skills"); isObject(v) {
		old, _ := parseObject(v)
		if on := old.get("enableSkillCommands"); on != nil && !o.has("enableSkillCommands") {
			o = o.set("enableSkillCommands", on)
		}
		if dirs := stringList(old.get("customDirectories")); len(dirs) > 0 {
			o = o.set("skills", jsonwire.AppendStrings(nil, dirs))
		} else {
			o = o.without("skills")
		}
	}
	if v := o.get("retry"); isObject(v) {
		retry, _ := parseObject(v)
		if old := retry.get("maxDelayMs"); old != nil {
			retry = retry.without("maxDelayMs")
			var provider object
			if p := retry.get("provider"); isObject(p) {
				provider, _ = parseObject(p)
			}
			if !provider.has("maxRetryDelayMs") {
				provider = provider.set("maxRetryDelayMs", old)
			}
			retry = retry.set("provider", provider.append(nil))
			o = o.set("retry", retry.append(nil))
		}
	}
	return o
}

func move(o object, old, name string, convert func(jsontext.Value) jsontext.Value) object {
	v := o.get(old)
	if v == nil {
		return o
	}
	w := convert(v)
	if w == nil {
		return o
	}
	o = o.without(old)
	if !o.has(name) {
		o = o.set(name, w)
	}
	return o
}

func stringList(v jsontext.Value) []string {
	var r jsonwire.Reader
	r.Reset(v)
	if v == nil || r.Kind() != '[' {
		return nil
	}
	list := []string{}
	for r.Array(); r.More(); {
		if r.Kind() == '"' {
			list = append(list, r.Text())
		} else {
			r.Skip()
		}
	}
	return list
}
