// Package resource loads what shapes an agent from files: context files, the
// system prompt, skills and prompt templates. It knows where each kind is looked
// for, which copy wins, what needs the project's trust, and how the system
// prompt is put together.
//
// Loading never fails as a whole: what cannot be used becomes a Diagnostic, and
// the rest is loaded.
//
//	folders := resource.Locate(os.Getenv, home, cwd)
//	trusted := …                        // see Trust
//	files, _ := resource.ContextFiles(folders)
//	skills, diags := resource.LoadSkills(resource.SkillOptions{Folders: folders, Trusted: trusted})
//	sections, err := resource.Prompt(resource.PromptOptions{
//		Cwd: folders.Cwd, Tools: tools, ContextFiles: files, Skills: skills,
//	})
package resource
