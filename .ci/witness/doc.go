// Package witness lets the vendors' own Go libraries say whether pinch speaks
// their protocols. It is a module of its own, so that pinch links and requires
// none of them.
//
// Each recorded context is sent by pinch to a loopback server. The body is then
// decoded into the types of the vendor's library, sent once more by that
// library, and compared: what the library does not know is lost on the way.
// The library reads the recorded answer too, and has to find the same text, tool
// calls and token counts in it. Errors go the same way: what is served to pinch
// also makes the library return its typed error.
//
// Where a library and a recorded vector disagree, the vector decides; such
// places are listed by name with the reason, and an entry that is not needed
// any more fails the test.
package witness
