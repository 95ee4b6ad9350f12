/** Floor: a bare node:http server that reads the body to its end and answers. It checks, parses and keeps nothing. */
import { createServer } from 'node:http';

createServer((request, response) => {
  request.on('data', () => {});
  request.on('end', () => response.end('{"success":true}'));
}).listen(Number(process.env.HTTP_PORT), '127.0.0.1');
