# Writes one table of a package as CSV: package, name, path.
request <- commandArgs(trailingOnly = TRUE)
place <- new.env()
data(list = request[2], package = request[1], envir = place)
write.csv(as.data.frame(get(request[2], envir = place)), request[3])
