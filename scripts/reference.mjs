// The pages of docs/reference, from what docgen read in the doc comments.
import { classOutline, declarationOf } from "./declaration.mjs"

const longest = 30

/**
 * The pages by their path below docs/reference. A package has a `directory` below packages, a `name`, and `modules` as
 * `parsePage` reads them, each with its `source`.
 */
export function renderReference(packages) {
  const pages = new Map([["README.md", renderIndex(packages)], ["exports.md", renderExports(packages)]])
  for (const each of packages) {
    for (const module of each.modules) pages.set(`${each.directory}/${module.name}.md`, renderModule(each, module))
  }
  return pages
}

/** The first sentence of a comment, on one line. */
export function sentence(description) {
  const line = description.split("\n\n")[0].replaceAll("\n", " ")
  return /^.*?\.(?= [A-Z]|$)/.exec(line)?.[0] ?? line
}

function renderIndex(packages) {
  const lists = packages.map(({ directory, modules, name }) =>
    `## ${name}\n\n${
      modules.map((module) =>
        `- [${module.name}](${directory}/${module.name}.md): ${plain(sentence(module.description))}`
      ).join("\n")
    }`
  )
  return page(`# Reference

Every module of every package, and every export of each. Written by \`npm run docs\` from the comments of the sources, whose
examples are compiled and run. Looking for a name? [All exports, from A to Z](exports.md).

${lists.join("\n\n")}`)
}

function renderExports(packages) {
  const places = new Map()
  for (const each of packages) {
    for (const module of each.modules) {
      for (const name of new Set(module.entries.map((entry) => entry.name))) {
        const anchor = anchorsOf(module).get(module.entries.find((entry) => entry.name === name))
        const link = `[${module.name}](${each.directory}/${module.name}.md#${anchor})`
        places.set(name, [...places.get(name) ?? [], link])
      }
    }
  }
  const names = [...places.keys()].sort((a, b) => compare(a.toLowerCase(), b.toLowerCase()) || compare(a, b))
  const letters = [...new Set(names.map((name) => name[0].toUpperCase()))]
  const lists = letters.map((letter) =>
    `## ${letter}\n\n${
      names
        .filter((name) => name[0].toUpperCase() === letter)
        .map((name) => `- \`${name}\`: ${places.get(name).join(", ")}`)
        .join("\n")
    }`
  )
  return page(`# All exports\n\nEvery name, and the modules that export it.\n\n${lists.join("\n\n")}`)
}

function renderModule({ directory, modules, name }, module) {
  const anchors = anchorsOf(module)
  const link = (text) => resolveLinks(text, module, modules, anchors)
  const contents = categoriesOf(module).map(([category, entries]) =>
    `- ${category}: ${entries.map((entry) => `[${title(entry)}](#${anchors.get(entry)})`).join(", ")}`
  )
  const parts = categoriesOf(module).flatMap(([category, entries]) => [
    `## ${category}`,
    ...entries.map((entry) =>
      [
        `### ${title(entry)}`,
        link(entry.description),
        fence(signature(entry, module.source)),
        ...entry.examples.flatMap((code) => ["Example:", fence(code)])
      ].join("\n\n")
    )
  ])
  return page([
    `# ${module.name}`,
    link(module.description),
    fence(`import { ${module.name} } from "${name}"\n// or\nimport * as ${module.name} from "${name}/${module.name}"`),
    ...module.examples.flatMap((code) => ["Example:", fence(code)]),
    `Written in [${module.name}.ts](../../../packages/${directory}/src/${module.name}.ts). [All modules](../README.md).`,
    contents.join("\n"),
    ...parts
  ].join("\n\n"))
}

function categoriesOf(module) {
  return [...new Set(module.entries.map((entry) => entry.category))].map((
    category
  ) => [category, module.entries.filter((entry) => entry.category === category)])
}

function title({ kind, name }) {
  return kind === "value" ? name : `${name} (${kind})`
}

/** docgen shows no field of a class, and the type of a large schema in full; both read better as they are written. */
function signature({ kind, name, signature }, source) {
  const declaration = declarationOf(source, name)
  if (declaration === undefined) return signature
  if (kind === "class") return classOutline(declaration)
  const isSchema = /^export const \w+(?:: [^=]+)? =\s+Schema\./.test(declaration)
  return isSchema && signature.split("\n").length > longest ? declaration : signature
}

/** The anchors code hosts give to the headings of a page: they drop punctuation and number what comes again. */
function anchorsOf(module) {
  const taken = new Set()
  const add = (heading) => {
    const slug = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-")
    let unique = slug
    for (let n = 1; taken.has(unique); n++) unique = `${slug}-${n}`
    taken.add(unique)
    return unique
  }
  add(module.name)
  const anchors = new Map()
  for (const [category, entries] of categoriesOf(module)) {
    add(category)
    for (const entry of entries) anchors.set(entry, add(title(entry)))
  }
  return anchors
}

/** `{@link name}` leads to that export, `{@link Module.name}` and `{@link Module}` to one of the same package. */
function resolveLinks(text, module, modules, anchors) {
  return text.replace(/\{@link\s+([\w.]+)\s*\}/g, (_, target) => {
    const own = module.entries.find((entry) => entry.name === target)
    if (own !== undefined) return `[\`${target}\`](#${anchors.get(own)})`
    const [first, second] = target.split(".")
    const other = modules.find(({ name }) => name === first)
    if (other === undefined) throw new Error(`${module.name}: {@link ${target}} leads nowhere`)
    const entry = second === undefined ? undefined : other.entries.find(({ name }) => name === second)
    if (second !== undefined && entry === undefined) throw new Error(`${module.name}: {@link ${target}} leads nowhere`)
    return `[\`${target}\`](${first}.md${entry === undefined ? "" : `#${anchorsOf(other).get(entry)}`})`
  })
}

function plain(text) {
  return text.replace(/\{@link\s+([\w.]+)\s*\}/g, "`$1`")
}

/** Not `ts`: those are the blocks that the tests of the docs run, and docgen has run these. */
function fence(code) {
  return `\`\`\`typescript\n${code.trimEnd()}\n\`\`\``
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0
}

function page(text) {
  return `${text.replace(/\n{3,}/g, "\n\n").trim()}\n`
}
