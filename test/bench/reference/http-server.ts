/** Floor: a bare node:http server that reads the body to its end and answers. It checks, parses and stores nothing. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const { ANSWER_FILE, HTTP_PORT } = process.env;
const answer = ANSWER_FILE === undefined ? '{"success":true}' : readFileSync(ANSWER_FILE);

createServer((request, response) => {
  request.on('data', () => {});
  request.on('end', () => response.end(answer));
}).listen(Number(HTTP_PORT), '127.0.0.1');
