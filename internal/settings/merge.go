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

// migrate renames keys of old files. counted is what of the settings counts: an old
// key whose value does not stays as it is, and one whose value does gives way to a
// new one beside it that counts too.
func migrate(o, counted object) object {
	move := func(old, name string, convert func(jsontext.Value) jsontext.Value) {
		v := o.get(old)
		if w := convert(v); w != nil && counted.has(old) {
			o = o.without(old)
			if !counted.has(name) {
				o = o.set(name, w)
			}
		}
	}
	move("queueMode", "steeringMode", func(v jsontext.Value) jsontext.Value { return v })
	move("websockets", "transport", func(v jsontext.Value) jsontext.Value {
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
		on := counted.at([]string{"skills", "enableSkillCommands"})
		if on != nil && !counted.has("enableSkillCommands") {
			o = o.set("enableSkillCommands", on)
		}
		if dirs := stringList(old.get("customDirectories")); len(dirs) > 0 {
			o = o.set("skills", jsonwire.AppendStrings(nil, dirs))
		} else {
			o = o.without("skills")
		}
	}
	if old := counted.at([]string{"retry", "maxDelayMs"}); old != nil {
		retry, _ := parseObject(o.get("retry"))
		retry = retry.without("maxDelayMs")
		var provider object
		if p := retry.get("provider"); isObject(p) {
			provider, _ = parseObject(p)
		}
		if counted.at([]string{"retry", "provider", "maxRetryDelayMs"}) == nil {
			provider = provider.set("maxRetryDelayMs", old)
		}
		retry = retry.set("provider", provider.append(nil))
		o = o.set("retry", retry.append(nil))
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
