// Whether every export says what it is, since when, and of which kind; and every function how it is used.

const categories = new Set([
  "constructors",
  "models",
  "schemas",
  "errors",
  "services",
  "layers",
  "references",
  "guards",
  "combinators",
  "decoding",
  "encoding",
  "running",
  "testing"
])

/** Looks at a module as `parsePage` reads it, with its `source`: how many exports it has, and what each lacks. */
export function coverage(module) {
  const problems = [
    ...module.description === "" ? [`${module.name}: no description`] : [],
    ...exportsOf(module.source)
      .filter((name) => !module.entries.some((entry) => entry.name === name))
      .map((name) => `${module.name}.${name}: not in the output of docgen`)
  ]
  const lacking = module.entries.flatMap((entry) => {
    const lacks = lacksOf(module, entry)
    return lacks.length === 0 ? [] : [`${module.name}.${entry.name}${kindOf(entry)}: ${lacks.join(", ")}`]
  })
  return {
    total: module.entries.length,
    documented: module.entries.length - lacking.length,
    problems: [...problems, ...lacking]
  }
}

function lacksOf(module, entry) {
  const lacks = [
    ...entry.description === "" ? ["no description"] : [],
    ...entry.since === undefined ? ["no @since"] : []
  ]
  // What an index exports are modules, which have neither.
  if (module.name === "index") return lacks
  return [
    ...lacks,
    ...categories.has(entry.category) ? [] : [`no category of ours, ${entry.category}`],
    ...isFunction(entry) && entry.examples.length === 0 && canShow(module, entry)
      ? ["a function without an @example"]
      : []
  ]
}

function isFunction({ kind, signature }) {
  return kind === "value" && /^export declare (?:function\b|const \w+: (?:<|\((?!typeof)|\{\s*[<(]))/.test(signature)
}

/** Whether an example would be run: a suite needs Vitest around it, and docgen overlooks what is exported by a list. */
function canShow(module, { name }) {
  return !module.name.endsWith("Suite") && new RegExp(`^export (?:const|function) ${name}\\b`, "m").test(module.source)
}

function kindOf({ kind }) {
  return kind === "value" ? "" : ` (${kind})`
}

/** The names a source exports, whatever docgen made of them. */
function exportsOf(source) {
  const declared = [...source.matchAll(/^export (?:declare )?(?:const|class|interface|type|function) (\w+)/gm)]
  const listed = [...source.replace(/\/\*[^]*?\*\//g, "").matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap((
    [, list]
  ) => list.split(",").map((item) => /(\w+)\s*$/.exec(item)))
  const names = [...declared, ...listed].flatMap((match) => match === null ? [] : [match[1]])
  return [...new Set(names)]
}
