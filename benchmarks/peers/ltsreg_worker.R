# Fits with robustbase::ltsReg and times inside R; worker.py describes the conversation.
suppressMessages(library(robustbase))
distances <- as.logical(commandArgs(trailingOnly = TRUE)[1])
answer <- function(...) { cat(..., "\n"); flush(stdout()) }

answer(paste0("R ", getRversion(), ", robustbase ", packageVersion("robustbase"),
              ", ", basename(extSoftVersion()["BLAS"])))
requests <- file("stdin", "r")
while (length(line <- readLines(requests, n = 1)) > 0) {
  request <- strsplit(line, " ")[[1]]
  rows <- as.integer(request[2])
  columns <- as.integer(request[3])
  values <- readBin(request[1], "double", rows * (columns + 1))
  x <- matrix(values[seq_len(rows * columns)], rows, columns)
  y <- values[-seq_len(rows * columns)]
  set.seed(1)
  seconds <- system.time(fit <- ltsReg(x, y, alpha = 0.5, mcd = distances))["elapsed"]
  stopifnot(fit$quan == as.integer(request[4]))
  answer(seconds, sprintf("%.17g", fit$raw.coefficients))
}
