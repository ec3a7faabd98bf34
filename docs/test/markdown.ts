// As much of Markdown as the tests of this folder need.

/** A fenced code block. `line` is the line of the page, counted from 1, on which its first code line stands. */
export interface Block {
  readonly info: string
  readonly line: number
  readonly code: string
}

/** Splits a page into its fenced code blocks and the text around them. */
export const parse = (page: string): { readonly blocks: Array<Block>; readonly text: string } => {
  const blocks: Array<Block> = []
  const text: Array<string> = []
  let open:
    | { readonly indent: number; readonly fence: string; readonly info: string; readonly line: number }
    | undefined
  let code: Array<string> = []

  for (const [index, line] of page.split("\n").entries()) {
    const fence = /^(\s*)(`{3,}|~{3,})\s*(.*?)\s*$/.exec(line)
    if (open === undefined) {
      if (fence === null) {
        text.push(line)
      } else {
        open = { indent: fence[1].length, fence: fence[2], info: fence[3], line: index + 2 }
        code = []
      }
    } else if (fence !== null && fence[2].startsWith(open.fence) && fence[3] === "") {
      blocks.push({ info: open.info, line: open.line, code: `${code.join("\n")}\n` })
      open = undefined
    } else {
      // A block inside a list item is indented as a whole.
      code.push(line.slice(Math.min(open.indent, line.length - line.trimStart().length)))
    }
  }
  if (open !== undefined) {
    throw new Error(`The code block of line ${open.line} is never closed`)
  }
  return { blocks, text: text.join("\n") }
}

/** The last line of text above a block that starts on a line of the page. */
export const lead = (page: string, line: number): string =>
  page.split("\n").slice(0, line - 2).filter((above) => above.trim() !== "").at(-1) ?? ""

/** The targets of all links and images. */
export const links = (page: string): Array<string> => {
  const text = parse(page).text.replace(/`[^`\n]*`/g, "")
  return [
    ...text.matchAll(/\]\(\s*<?([^\s)>]+)>?[^)]*\)/g),
    ...text.matchAll(/^\s*\[[^\]]+\]:\s*<?([^\s>]+)>?/gm),
    ...text.matchAll(/\b(?:href|src)="([^"]+)"/g)
  ].map((match) => match[1])
}

/** The anchors of a page, made the way code hosts make them. */
export const anchors = (page: string): Set<string> => {
  const { text } = parse(page)
  const found = new Set<string>()
  for (const [, title] of text.matchAll(/^#{1,6}\s+(.*?)\s*#*$/gm)) {
    const slug = title
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-")
    let unique = slug
    for (let n = 1; found.has(unique); n++) unique = `${slug}-${n}`
    found.add(unique)
  }
  for (const [, id] of text.matchAll(/<\w+[^>]*\s(?:id|name)="([^"]+)"/g)) found.add(id)
  return found
}
