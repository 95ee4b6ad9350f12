import { VERSION } from '@playline/runtime';
import { findOrphans } from '../children.ts';
import { EXIT } from '../command-table.mjs';
import type { StackPaths } from '../paths.ts';
import { readStatus, toLines, toVerdict } from '../status.ts';

/**
 * `npm run status`: asks every process now. Ends with 1 when one does not serve or the supervisor is gone, and with 3
 * when no stack runs.
 */
export async function status(places: StackPaths, args: readonly string[]): Promise<number> {
  const statuses = await readStatus(places);
  const orphans = findOrphans(places).map(({ name }) => name);
  const { isWell, sentence } = toVerdict(statuses, orphans);
  const lines = statuses === null ? [sentence] : [...toLines(statuses), '', sentence];
  if (statuses !== null) lines.unshift(`Playline ${VERSION}`, '');
  if (args.includes('--json')) console.log(JSON.stringify({ version: VERSION, isWell, processes: statuses ?? [] }));
  else for (const line of lines) console.log(line);
  if (statuses === null && orphans.length === 0) return EXIT.unreachable;
  return isWell ? EXIT.ok : EXIT.failed;
}
