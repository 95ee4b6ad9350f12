import { dirname, join } from 'node:path';
import { runCommand } from './command.ts';
import { logFileOf, type Places } from './places.ts';
import { environmentWithoutStores } from './services.ts';
import { sharedSettingsOf } from './stack-file.ts';

/**
 * A link for the first administrator of the portal. It is only for the terminal and is never logged. Null when there is
 * an administrator, or when that cannot be found out now: `npm run accounts -- link` reports which.
 */
export async function makeFirstLink(places: Places): Promise<string | null> {
  const main = join(places.checkout, 'services', 'operator', 'src', 'main.ts');
  // The command finds the stack by its records, as it does for people.
  const folder = dirname(places.state);
  const env = { ...environmentWithoutStores(), ...sharedSettingsOf(process.env) };
  try {
    const args = [main, 'accounts', 'link', '--json'];
    const output = await runCommand(process.execPath, args, { folder, env, logFile: logFileOf(places, 'operator') });
    return (JSON.parse(output) as { link: string }).link;
  } catch {
    return null;
  }
}

/** The line that a start prints with the link. */
export function firstLinkReport(link: string): string {
  return `  Nobody administers the portal yet. Whoever opens this link first does; it is good for 15 minutes, once:
    ${link}
  Another one: npm run accounts -- link
`;
}
