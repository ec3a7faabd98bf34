// llms.txt: what a coding assistant needs, written by hand, and below it lists of all pages, written here.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { sentence } from "./reference.mjs"

/** The line below which llms.txt is generated. */
export const marker = "The lists from here on are written by `npm run docs`."

// The folders of docs in the order in which they help. One that is not named comes after these.
const order = ["guide", "errors", "coming-from"]

/** The file with its lists as they should be. `packages` are those of the reference. */
export function withLists(text, root, packages) {
  const head = text.indexOf(marker)
  if (head < 0) throw new Error(`llms.txt has no line "${marker}"`)
  const lists = [...pages(root), ...programs(root), ...reference(packages)]
  return `${text.slice(0, head)}${marker}\n\n${
    lists.map(([title, links]) => `## ${title}\n\n${links.join("\n")}\n`).join("\n")
  }`
}

function pages(root) {
  const told = toldIn(root)
  const files = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".md") && file !== "README.md" && !/^(reference|test)\//.test(file))
    .sort()
  const folders = [...new Set(files.filter((file) => file.includes("/")).map((file) => file.split("/")[0]))]
  const place = (folder) => order.includes(folder) ? order.indexOf(folder) : order.length
  const link = (file) => {
    const text = readFileSync(join(root, "docs", file), "utf8")
    return `- [${titleOf(text)}](docs/${file}): ${told.get(file) ?? firstSentence(text)}`
  }
  return [
    ...folders.sort((a, b) => place(a) - place(b)).map((
      folder
    ) => [heading(folder), files.filter((file) => file.startsWith(`${folder}/`)).map(link)]),
    ["More pages", files.filter((file) => !file.includes("/")).map(link)]
  ]
}

function programs(root) {
  const told = toldIn(root)
  const examples = readdirSync(join(root, "examples/src")).filter((file) => /^\d\d-[^.]*\.ts$/.test(file)).sort()
  const link = (file) => {
    const sentence = told.get(`../examples/src/${file}`)
    return `- [${file}](examples/src/${file})${sentence === undefined ? "" : `: ${sentence}`}`
  }
  const packages = readdirSync(join(root, "packages"))
    .filter((name) => existsSync(join(root, "packages", name, "README.md")))
    .map((name) => {
      const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"))
      return `- [${manifest.name}](packages/${name}/README.md): ${manifest.description}`
    })
  return [["Examples", examples.map(link)], ["Packages", packages]]
}

function reference(packages) {
  return packages.map(({ directory, modules, name }) => [
    `Reference of ${name}`,
    modules.map((module) =>
      `- [${module.name}](docs/reference/${directory}/${module.name}.md): ${sentence(module.description)}`
    )
  ])
}

/** What docs/README.md says of the pages it links, in a list or in a table. */
function toldIn(root) {
  const text = readFileSync(join(root, "docs/README.md"), "utf8")
  const links = [...text.matchAll(/\]\(([^)#]+)\)(?:\s*\||:)\s*(.+)$/gm)]
  return new Map(links.map(([, path, rest]) => [path, withoutLinks(rest.replace(/\s*\|\s*$/, ""))]))
}

function titleOf(text) {
  return /^# (.*)$/m.exec(text)?.[1] ?? ""
}

function firstSentence(text) {
  const paragraph = text.split("\n\n").find((part) => /^[\p{L}`"[]/u.test(part)) ?? ""
  return withoutLinks(sentence(paragraph))
}

function withoutLinks(text) {
  return text.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
}

function heading(folder) {
  const words = folder.replaceAll("-", " ")
  return words[0].toUpperCase() + words.slice(1)
}
