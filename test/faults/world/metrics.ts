/** Sums a metric over its label sets. @param label includes only label sets that contain this text */
export function sumOf(text: string, name: string, label = ''): number {
  const lines = text
    .split('\n')
    .filter((line) => (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) && line.includes(label));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

export async function metricsOf({ adminUrl }: { adminUrl: string }): Promise<string> {
  return await (await fetch(`${adminUrl}/metrics`, { headers: { connection: 'close' } })).text();
}
