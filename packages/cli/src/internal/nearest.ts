/**
 * What somebody may have meant: the names nearest to one that does not exist.
 */

/** How many letters have to be added, dropped, changed or swapped with their neighbour to make one word of another. */
export const distance = (from: string, to: string): number => {
  let before: ReadonlyArray<number> = []
  let last: ReadonlyArray<number> = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const next = [row]
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1]
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      next.push(Math.min(
        last[column]! + 1,
        next[column - 1]! + 1,
        last[column - 1]! + (isSame ? 0 : 1),
        isSwap ? before[column - 2]! + 1 : Infinity
      ))
    }
    before = last
    last = next
  }
  return last[to.length]!
}

/** The names near enough to be meant, the nearest first: those that begin alike, and those with a letter or two amiss. */
export const nearest = (
  asked: string,
  names: ReadonlyArray<string>,
  limit: number = 3
): ReadonlyArray<string> => {
  const wanted = asked.toLowerCase()
  const far = (name: string): number => {
    const known = name.toLowerCase()
    if (wanted.length > 1 && known.startsWith(wanted)) return 0.5
    return distance(wanted, known)
  }
  return names
    .map((name) => ({ name, far: far(name) }))
    .filter(({ far, name }) => far <= Math.max(1, Math.floor(Math.min(name.length, wanted.length) / 3)))
    .sort((one, other) => one.far - other.far)
    .slice(0, limit)
    .map(({ name }) => name)
}
