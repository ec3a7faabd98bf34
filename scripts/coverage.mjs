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
  const isIndex = module.name === "index"
  const problems = [
    ...module.description === "" ? [`${module.name}: no description`] : [],
    ...exportsOf(module.source)
      .filter((name) => !module.entries.some((entry) => entry.name === name))
      .map((name) => `${module.name}.${name}: not in the output of docgen`)
  ]
  const lacking = module.entries.flatMap((entry) => {
    const lacks = isIndex ? lacksOfAll(entry) : [...lacksOfAll(entry), ...lacksOfMember(entry)]
    return lacks.length === 0 ? [] : [`${module.name}.${entry.name}${kindOf(entry)}: ${lacks.join(", ")}`]
  })
  return {
    total: module.entries.length,
    documented: module.entries.length - lacking.length,
    problems: [...problems, ...lacking]
  }
}

function lacksOfAll({ description, since }) {
  return [...description === "" ? ["no description"] : [], ...since === undefined ? ["no @since"] : []]
}

function lacksOfMember(entry) {
  return [
    ...categories.has(entry.category) ? [] : [`no category of ours, ${entry.category}`],
    ...isFunction(entry) && entry.examples.length === 0 ? ["a function without an @example"] : []
  ]
}

function isFunction({ kind, signature }) {
  return kind === "value" && /^export declare (?:function\b|const \w+: (?:<|\((?!typeof)|\{\s*[<(]))/.test(signature)
}

function kindOf({ kind }) {
  return kind === "value" ? "" : ` (${kind})`
}

/** The names a source exports, whatever docgen made of them. */
function exportsOf(source) {
  const declared = [...source.matchAll(/^export (?:declare )?(?:const|class|interface|type|function) (\w+)/gm)]
  const listed = [...source.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list]) =>
    list.replace(/\/\*[^]*?\*\//g, "").split(",").map((item) => /(\w+)\s*$/.exec(item))
  )
  const names = [...declared, ...listed].flatMap((match) => match === null ? [] : [match[1]])
  return [...new Set(names)]
}
