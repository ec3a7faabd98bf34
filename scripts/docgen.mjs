// Reads what docgen wrote about a module. Its pages have one heading per category, and one below for each export.

/** Reads a page of docgen: what the module says of itself, and its exports in the order of the page. */
export function parsePage(page) {
  const [overview, ...parts] = sections(page)
  let category = ""
  const entries = []
  for (const { level, title, text } of parts) {
    if (level === 1) category = title
    if (level === 2) entries.push({ category, ...named(title), ...parseBody(text) })
    if (level > 2) throw new Error(`docgen wrote about a member, ${title}, which nothing here knows how to show`)
  }
  const { description, examples, since } = parseBody(overview.text.split(/^---$/m)[0])
  return { name: overview.title.replace(/ overview$/, ""), description, examples, since, entries }
}

/** Splits a page at its headings, without being misled by those in code blocks. What stands before the first is dropped. */
function sections(page) {
  const found = []
  let fenced = false
  for (const line of page.replace(/^[^]*?^---$/m, "").split("\n")) {
    if (line.startsWith("```")) fenced = !fenced
    const heading = fenced ? null : /^(#+) (.*)$/.exec(line)
    if (heading !== null) found.push({ level: heading[1].length, title: heading[2], lines: [] })
    else found.at(-1)?.lines.push(line)
  }
  return found.map(({ level, lines, title }) => ({ level, title, text: lines.join("\n") }))
}

/** "Halt (interface)" is the interface `Halt`; a name alone is a value. */
function named(title) {
  const [, name, kind = "value"] = /^(.*?)(?: \((class|interface|type alias|namespace)\))?$/.exec(title)
  return { name, kind }
}

/** What docgen says of one export: text, then the signature, then examples, then the version. */
function parseBody(text) {
  const blocks = [...text.matchAll(/^\*\*(Signature|Example)\*\*.*\n+```ts\n([^]*?)\n```$/gm)]
  const of = (what) => blocks.filter((block) => block[1] === what).map((block) => block[2])
  return {
    description: text.slice(0, blocks[0]?.index).replace(/^Added in v\S+$/m, "").trim(),
    signature: of("Signature")[0] ?? "",
    examples: of("Example"),
    since: /^Added in v(\S+)$/m.exec(text)?.[1]
  }
}
