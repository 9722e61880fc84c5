// Package resource loads what shapes an agent from files: context files, the
// system prompt, skills and prompt templates. It knows where each kind is looked
// for, which copy wins, what needs the project's trust, what in a file is not to
// be believed, and how the system prompt is put together.
//
// Loading never fails as a whole: what cannot be used becomes a Diagnostic,
// and the rest is loaded.
//
//	folders := resource.Locate(os.Getenv, home, cwd)
//	trusted := …                        // see TrustQuery
//	files, _ := resource.ContextFiles(folders)
//	packages, _ := resource.FindPackages(resource.PackageOptions{Folders: folders, Trusted: trusted, User: …})
//	skills, diags := resource.LoadSkills(resource.Places{Folders: folders, Trusted: trusted, Packages: packages})
//	sections, err := resource.Prompt(resource.PromptOptions{
//		Cwd: folders.Cwd, Tools: tools, ContextFiles: files, Skills: skills,
//	})
//
// # Folders
//
// The user's files are in the agent folder, $PINCH_AGENT_DIR, $PI_CODING_AGENT_DIR
// or ~/.pinch/agent. A project's are in its .pinch folder, else its .pi folder,
// resource by resource. Skills are looked for in .agents/skills as well: in that
// of the home folder, and in those from the working folder up to the git root.
//
// # Skills
//
// A skill is a folder with a file SKILL.md, or a single Markdown file:
//
//	---
//	name: release
//	description: How to cut a release of this project
//	---
//	1. Run the tests. …
//
// The model is told the name, the description and the path of each, and reads
// the file when a task calls for it: a hundred skills cost a line each. A person
// calls one with /skill:release and what to do with it. The field
// disable-model-invocation keeps a skill for persons alone. The fields license,
// compatibility, metadata and allowed-tools are for readers.
//
// Of two skills of one name the first of these counts, and a Diagnostic of type
// Collision names both files:
//
//  1. packages for this run
//  2. paths of the project's settings, then its .pinch/skills or .pi/skills, then
//     .agents/skills from the working folder up (with trust)
//  3. paths of the user's settings, then skills of the agent folder, then
//     ~/.agents/skills
//  4. packages of the project, then of the user
//  5. paths of the command line, then of hooks
//
// A folder is searched in the order of names. One with a SKILL.md is a skill, and
// nothing below it is looked at; in others, Markdown files beside the folders
// count (in .agents/skills those one level down or deeper instead). Names that
// begin with a dot, node_modules, and what .gitignore, .ignore and .fdignore
// leave out are passed over.
//
// A list of paths in settings has paths and patterns to load, and filters what
// its scope offers otherwise: !pattern takes away, +path brings back, -path takes
// away for good.
//
// # Templates
//
// A template is a Markdown file in a folder prompts, called as /name. Its places
// are $1, $@ or $ARGUMENTS, ${1:-text} and ${@:2:3}; Substitute has the rules.
// What is put in is not looked at again, so a template calls neither itself nor
// others.
//
// # Packages
//
// A package is a folder with skills and templates, and what else an agent may
// load, of which package.json tells under "pi"; without that, its folders skills
// and prompts count. FindPackages finds those on this machine and installs none.
//
// # Trust
//
// A repository that was just cloned should not steer an agent. Until a person
// trusts a project, only its context files are read. TrustQuery decides, from a
// flag, from what an extension or trust.json says, from a setting, or by asking;
// where nobody can be asked the answer is no.
//
// # Findings
//
// Every file that is loaded is looked through for what a person who reads it
// would not see or expect. Findings says what there is, where, and what to do.
// Most of it is a report: a skill with a script that fetches and runs another
// works as it always did. One thing is acted on, because nobody can have meant
// it: text that cannot be seen, or that shows as something else, which are the
// findings of severity Dangerous. They are invisible tag characters, data in runs
// of variation selectors or of characters without a width, overrides of the
// direction of writing, and terminal control. Such text
//
//   - is left out of context files, prompt texts, templates, and of the names and
//     descriptions of skills;
//   - makes a skill Withheld: the model, which reads skills from their files, is
//     not told of it. A person who calls it gets the text that shows.
//
// Also left out, with a Diagnostic, are context files and templates that are
// links out of their repository to something else than Markdown or plain text:
// a repository that was just cloned must not send a key to a provider.
//
// Emoji, flags, text in Arabic, Hebrew, Persian, Indic scripts, Thai or Chinese,
// with the joiners and marks of direction that they need, are no findings.
//
// # Bounds
//
// Files above 1 MiB and heads above 64 KiB are left out with a Diagnostic; so is
// a head whose aliases stand for more than ten thousand values. A search looks at
// ten thousand files and folders. Links may lead in circles.
//
// # The system prompt
//
// Prompt puts the parts together in a fixed order: what seldom changes comes
// first, the working folder last, and there is no clock in it. The same options
// give the same bytes, so that a provider finds its cached prefix again, and a
// change of one part leaves the bytes of the others alone.
package resource
