import type { Visit } from './frame/page.ts';

/** The address of this page with some parameters changed. An empty value removes a parameter; `done` and `chart` are not kept. */
export function hrefWith(
  { path, query }: Pick<Visit, 'path' | 'query'>,
  changes: Readonly<Record<string, string>>,
): string {
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries({ done: '', chart: '', ...changes })) {
    if (value === '') changed.delete(name);
    else changed.set(name, value);
  }
  return changed.size === 0 ? path : `${path}?${changed}`;
}
