/** Sum of a metric over its label sets. @param text as a service tells its metrics @param label only sets that hold it */
export function sumOf(text: string, name: string, label = ''): number {
  const lines = text
    .split('\n')
    .filter((line) => (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) && line.includes(label));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

/** Asks a process for its metrics. @param adminUrl of its listener of operation */
export async function metricsOf({ adminUrl }: { adminUrl: string }): Promise<string> {
  return await (await fetch(`${adminUrl}/metrics`, { headers: { connection: 'close' } })).text();
}
