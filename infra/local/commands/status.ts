import { VERSION } from '@playline/runtime';
import { findOrphans } from '../children.ts';
import { EXIT } from '../command-table.mjs';
import type { StackPaths } from '../paths.ts';
import { readStatus, toLines, toVerdict } from '../status.ts';

/** @returns 1 if a process is not ready or the supervisor is dead, 3 if the stack is not running */
export async function status(paths: StackPaths, args: readonly string[]): Promise<number> {
  const statuses = await readStatus(paths);
  const orphans = findOrphans(paths).map(({ name }) => name);
  const { isWell, sentence } = toVerdict(statuses, orphans);
  const lines = statuses === null ? [sentence] : [...toLines(statuses), '', sentence];
  if (statuses !== null) lines.unshift(`Playline ${VERSION}`, '');
  if (args.includes('--json')) console.log(JSON.stringify({ version: VERSION, isWell, processes: statuses ?? [] }));
  else for (const line of lines) console.log(line);
  if (statuses === null && orphans.length === 0) return EXIT.unreachable;
  return isWell ? EXIT.ok : EXIT.failed;
}
