// What docgen leaves out of a signature, or draws out over pages, as it stands in the source. The sources are formatted:
// a declaration starts at the margin and ends before an empty line at which every bracket is closed.

/** The declaration of a value or a class as it is written, or undefined where there is none of that name. */
export function declarationOf(source, name) {
  const start = new RegExp(`^export (?:const|class) ${name.replaceAll("$", "\\$")}\\b`, "m").exec(source)
  if (start === null) return undefined
  const paragraphs = source.slice(start.index).split(/\n(?=\n|$)/)
  for (let end = 1; end <= paragraphs.length; end++) {
    const text = paragraphs.slice(0, end).join("\n")
    if (isClosed(text)) return text.trimEnd()
  }
  return undefined
}

/** A class without what its members do: its head, which holds the fields, and the members that have a comment. */
export function classOutline(declaration) {
  const head = /^[^]*?(?:^\S*[)>\w]|^export class .*[)>\w]) \{\}?$/m.exec(declaration)?.[0] ?? declaration
  const members = [...declaration.slice(head.length).matchAll(/^( {2}\/\*\*[^]*?\*\/\n {2}\S.*?) \{$/gm)]
  const outline = head.replace(/ \{\}?$/, "")
  return members.length === 0 ? outline : `${outline} {\n${members.map((member) => member[1]).join("\n\n")}\n}`
}

function isClosed(text) {
  const code = text.replace(/\/\*[^]*?\*\/|\/\/.*$/gm, "").replace(/"(?:[^"\\\n]|\\.)*"|`[^`]*`/g, "")
  const count = (brackets) => code.split("").filter((character) => brackets.includes(character)).length
  return count("([{") === count(")]}")
}
