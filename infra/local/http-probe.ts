/** A process that accepts a connection and then says nothing is asked again after this. */
const ANSWER_MS = 2000;

/** True when the address answers with a status of 200 to 299. @throws when it does not answer */
export async function answersOk(url: string): Promise<boolean> {
  const response = await fetch(url, { headers: { connection: 'close' }, signal: AbortSignal.timeout(ANSWER_MS) });
  await response.body?.cancel();
  return response.ok;
}
