const capitalise = (text: string) => text.replace(/(^|[@. _-])(\p{Ll})/gu, (start) => start.toUpperCase());

/** Lists ids that people confuse with an id: in another case, with a space, or in another Unicode form. */
export function listSimilarIds(id: string): string[] {
  const [first = ''] = id;
  const cases = [id, id.toLowerCase(), id.toUpperCase(), capitalise(id), first.toUpperCase() + id.slice(first.length)];
  return [...new Set([...cases, ` ${id}`, `${id} `, id.normalize('NFC'), id.normalize('NFD')])];
}
